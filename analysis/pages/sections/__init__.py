"""The report's parts, a module each, whose `section(...)` gives an html.Section."""

"""One page of an evaluation, to look through in a browser (tools/gallery.py).

    page     numbers and template put together; template/ has its frame, style and script
    pixels   what the images look like
    sheets   many of them in a few pictures

Nothing else imports it.
"""

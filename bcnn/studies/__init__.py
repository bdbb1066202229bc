"""Questions of our own about trained weights.

    placement            where dropout samples
    adaptive_agreement   what adaptive T changes
    antithetic_gain      what antithetic masks change
    beyond               the studies beyond the paper as tools/study.py runs them
    trained              which weights they take, where their results are stored
    approximation        where weight averaging departs from the mean over masks
    off_data             whether the uncertainty tells images of another kind
    quality              what a dropout probability makes of a net

Nothing else imports it.
"""

"""The recorded tables of analysis/results: their schema, recording, verifying.

    schema                          which tables there are, and what their columns mean
    csv_tables, writing             a table as a file: read with every problem named, written whole
    record                          what tools/record.py does
    gather                          the rows that run folders and evaluations give
    merge                           new rows into the recorded ones
    thumbnails                      which images are shown, and their pictures
    verify                          what tools/verify.py does: whether stored results are what their raw parts say
    verify_folders, verify_tables   of runs and evaluations; of the tables
    findings                        what a check finds
    shipped                         the caffemodels of weights/, made of recorded runs

Knows nothing of figures and the workflow.
"""

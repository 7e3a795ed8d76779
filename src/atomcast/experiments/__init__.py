"""One file for each claim or figure of the paper: run it, write its rows, draw its picture."""

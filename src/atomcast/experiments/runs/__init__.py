"""How the runs of the figures are made: dFW, baselines, ADMM, kernel SVMs, clocks, ranks."""

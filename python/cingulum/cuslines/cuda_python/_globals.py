"""Constants by which cuslines is known; none of them limits Cingulum."""

EXCESS_ALLOC_FACT = 2
MAX_SLINES_PER_SEED = 10
MAX_SLINE_LEN = 501
PMF_THRESHOLD_P = 0.05
THR_X_BL = 64
THR_X_SL = 32
NORM_EPS = 1e-12

# From (-0.6, 0.6), reach the least-squares line to 1 % within 15 steps.
my_rate = 1.3

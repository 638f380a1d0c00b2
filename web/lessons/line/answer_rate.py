my_rate = 0.6

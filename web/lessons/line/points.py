import numpy as np

import tensorgrad as tg

# The points of the picture: drag one there, and this cell is written anew.
x = np.float32([-0.85, -0.6, -0.35, -0.1, 0.15, 0.4, 0.6, 0.85])
y = np.float32([-0.62, -0.38, -0.41, 0.08, 0.2, 0.24, 0.66, 0.7])
show(x=x, y=y)

import gc, sys
from pathlib import Path
import numpy as np, pytest
from mnist import main
@pytest.mark.webgpu(timeout=600)
async def test_heap():
    import pyodide_js
    m = pyodide_js._module
    digits = dict(np.load("/project/build/data/mnist.npz"))
    last=[0]
    def on_step(step, steps, loss):
        h=m.HEAPU8.byteLength
        if h!=last[0] or step in (20, 520, 1020, 1400):
            last[0]=h
            gc.collect()
            print(step, h, sys.getallocatedblocks(), len(gc.get_objects()))
    await main(digits, epochs=10, on_step=on_step, device="webgpu")

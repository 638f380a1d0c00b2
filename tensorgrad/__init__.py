"""Train models on the GPU from a web page: tensors and autograd in pure Python, compiled to WebGPU."""

__version__ = "0.1.0"

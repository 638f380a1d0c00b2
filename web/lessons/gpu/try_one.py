# A softmax over the rows that adds up by a matmul with ones, as one might to please a library of fast matmuls.
def my_softmax(x):
    powers = tg.exp(x)
    return powers / (powers @ tg.ones((x.shape[1], 1)))


for kernel in compiled(my_softmax, {"x": numbers(256, 64)}, True).kernels:
    print(kernel.name.strip(), "→", kernel.formula)

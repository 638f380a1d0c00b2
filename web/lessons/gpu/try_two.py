# Fusion has its limits. Write a function of x alone that stays two kernels, however well they are fused.
def two(x):
    return x * 2 + 1


for kernel in compiled(two, {"x": numbers(256, 64)}, True).kernels:
    print(kernel.name.strip(), "→", kernel.formula)

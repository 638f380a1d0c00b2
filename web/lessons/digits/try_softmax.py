# The bars are the softmax of the network's ten numbers: positive, and 1 together.
def softmax(numbers):
    return np.exp(numbers)


print(softmax(np.float32([1, 2, 3])))

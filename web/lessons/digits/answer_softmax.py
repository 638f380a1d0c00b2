def softmax(numbers):
    powers = np.exp(numbers - np.max(numbers))
    return powers / powers.sum()


print(softmax(np.float32([1, 2, 3])))

# How many bits do the two numbers say of a digit, each of them?
mean, log_variance = await encode(x=test_images[:300], y=test_labels[:300])
bits = ((mean**2 + np.exp(log_variance) - 1 - log_variance) / 2).sum()
print(bits)

# Which digit is the hardest? Ten numbers: the part of each digit's test images that are recognised.
found = await answers(x=test_images)
per_digit = [np.mean(found == test_labels) for digit in range(10)]
print(np.round(per_digit, 3))

found = await answers(x=test_images)
per_digit = [np.mean(found[test_labels == digit] == digit) for digit in range(10)]
print(np.round(per_digit, 3))

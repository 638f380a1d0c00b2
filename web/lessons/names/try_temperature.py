# What the slider does: the chances of the letters, at a temperature.
def chances_at(numbers, temperature):
    powers = np.exp(numbers - np.max(numbers))
    return powers / powers.sum()


name = ""
while not name.endswith(".") and len(name) < CONTEXT:
    numbers = (await answers(tokens=started(name)))[0, len(name)]
    name += rng.choice(list(LETTERS), p=chances_at(np.float64(numbers), 0.5))
print(name)

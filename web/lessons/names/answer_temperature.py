def chances_at(numbers, temperature):
    powers = np.exp((numbers - np.max(numbers)) / temperature)
    return powers / powers.sum()


name = ""
while not name.endswith(".") and len(name) < CONTEXT:
    numbers = (await answers(tokens=started(name)))[0, len(name)]
    name += rng.choice(list(LETTERS), p=chances_at(np.float64(numbers), 0.5))
print(name)

# Bigrams know one letter. These shall count what follows two, but they still count pairs.
def triples(tokens, targets):
    """The letter before each token, the token, and what follows it."""
    before = np.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
    return before[targets >= 0], tokens[targets >= 0], targets[targets >= 0]


counts2 = np.ones((27, 27))
np.add.at(counts2, pairs(tokens, targets), 1)
chances2 = counts2 / counts2.sum(-1, keepdims=True)
trigrams = np.mean(-np.log(chances2[pairs(test_tokens, test_targets)]))
print(f"loss on the test names {trigrams:.3f}")

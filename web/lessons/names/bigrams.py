def pairs(tokens, targets):
    """All tokens, and what follows each."""
    return tokens[targets >= 0], targets[targets >= 0]


counts = np.ones((27, 27))  # 1 and not 0: a pair that was never seen is rare, not impossible
np.add.at(counts, pairs(tokens, targets), 1)
chances = counts / counts.sum(1, keepdims=True)
bigrams = np.mean(-np.log(chances[pairs(test_tokens, test_targets)]))
print(f"after q comes u in {chances[17, 21]:.0%}; loss on the test names {bigrams:.3f}")

count = sum(weight.size for weight in model.parameters())
scores = (await seen(**shown))["test"]
print(f"{count} weights, test accuracy {scores['accuracy']:.1%}")

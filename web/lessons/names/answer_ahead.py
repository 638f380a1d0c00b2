async def looks_ahead(answers):
    word, other = started("maria"), started("mario")
    difference = await answers(tokens=word) - await answers(tokens=other)
    return np.abs(difference[:, :5]).max() > 1e-3


print(await looks_ahead(answers), await looks_ahead(peeking_answers))

# Does a network look ahead? Another letter at place 5 may change nothing that is answered before place 5.
async def looks_ahead(answers):
    word, other = started("maria"), started("mario")
    difference = await answers(tokens=word) - await answers(tokens=other)
    return np.abs(difference).max() > 1e-3


print(await looks_ahead(answers), await looks_ahead(peeking_answers))

# The same network, in which each letter sees those after it, too.
nn.init.manual_seed(0)
peeking = await tg.compile(Transformer(masked=False), loss_fn, optim.AdamW(5e-3), batch, seed=0)
losses = await peeking.run_steps(80, drawn(80))
peeking_answers = await peeking.attach(lambda model, tokens: model(tokens), some)
print(f"training loss {losses[:5].mean():.3f} at first, {losses[-5:].mean():.3f} after 80 steps")

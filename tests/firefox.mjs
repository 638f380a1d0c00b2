// Firefox with one page, for `firefox_driver.py`. Arguments: where puppeteer-core is, the browser's path, its
// preferences as JSON. A line of JSON each:
//
//   out   {"value": the browser's version}
//   in    ["command", argument, ...]                      of those below
//   out   {"value": what it gave} or {"error": why it failed}

import { createInterface } from 'node:readline';

const PATIENCE = 120_000; // ms for one answer, on a busy machine

const [puppeteer, executablePath, preferences] = process.argv.slice(2);
const { launch } = await import(puppeteer);
const browser = await launch({
  browser: 'firefox',
  executablePath,
  extraPrefsFirefox: JSON.parse(preferences),
  timeout: PATIENCE,
  protocolTimeout: PATIENCE,
});
const page = await browser.newPage();
page.setDefaultTimeout(PATIENCE);

const problems = [];
page.on('pageerror', (error) => problems.push(error.message));
page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
page.on('response', (response) => response.status() >= 400 && problems.push(`${response.status()} ${response.url()}`));
await page.exposeFunction('reportProblem', (text) => void problems.push(text));
await page.evaluateOnNewDocument(() => {
  addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
    reportProblem(`the policy's ${violatedDirective} refused ${blockedURI} in ${sourceFile}:${lineNumber}`),
  );
});

const commands = {
  open: async (url) => void (await page.goto(url)),
  reload: async () => void (await page.reload()),
  read: (expression) => page.evaluate(expression),
  click: (selector) => page.click(selector),
  type: (text) => page.keyboard.type(text),
  /** One key, with those that are held before it: `Control+a`. */
  press: async (keys) => {
    const held = keys.split('+');
    const key = held.pop();
    for (const name of held) await page.keyboard.down(name);
    await page.keyboard.press(key);
    for (const name of held.reverse()) await page.keyboard.up(name);
  },
  problems: () => problems,
};

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
say({ value: await browser.version() });
for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...args] = JSON.parse(line);
  await Promise.resolve(commands[command](...args)).then(
    (value) => say({ value: value ?? null }),
    (error) => say({ error: error.message }),
  );
}
await browser.close();

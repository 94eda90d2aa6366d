// Whatever the agent says: there is no empty bubble, and no words are swallowed. The agent says what it is told.

import { reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  const says = [
    ["#", "I am not sure what you would like. Which of these?"],
    ["&nbsp;", "I am not sure what you would like. Which of these?"],
    ["[]()", "I am not sure what you would like. Which of these?"],
    ["[Answer]: 42", "[Answer]: 42"],
    ["[](https://a.example/)", "https://a.example/"],
    ["42.", "42."],
    ["Let me see. </think> Yes.", "Yes."],
  ];
  for (const [index, [said, shown]] of says.entries()) {
    await ada.says(said);
    await reads(ada.words(index), shown);
  }
  await ada.leaves();
});

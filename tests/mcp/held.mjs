// An agent whose run goes on until the test, which listens at the PORT, closes the connection. The test gets the URL and the token of the
// run's tools on it.

import { readFileSync } from "node:fs";
import { connect } from "node:net";

const turn = JSON.parse(readFileSync(0, "utf8"));
const socket = connect(Number(process.argv[2]), "127.0.0.1", () => socket.write(`${JSON.stringify(turn.mcp)}\n`));
socket.resume().on("end", () => {
  socket.end();
  console.log("The end.");
});

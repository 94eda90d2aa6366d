// An agent for `kind = "http"`: node agent.mjs 8080, with the secret in SERVICE_SECRET.
// @ts-check
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from((process.env.SERVICE_SECRET ?? "").replace(/^whsec_/, ""), "base64");

/** @param {import("node:http").IncomingHttpHeaders} headers @param {Buffer} body */
function isGenuine(headers, body) {
  const id = String(headers["webhook-id"]), at = String(headers["webhook-timestamp"]);
  const signed = createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64");
  const signature = Buffer.from(`v1,${signed}`);
  const isFresh = Math.abs(Date.now() / 1000 - Number(at)) < 300;
  const given = String(headers["webhook-signature"]).split(" ").map((one) => Buffer.from(one));
  return isFresh && given.some((one) => one.length === signature.length && timingSafeEqual(one, signature));
}

const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = Buffer.concat(pieces);
  if (!isGenuine(request.headers, body)) {
    response.writeHead(401).end("the signature is wrong");
    return;
  }
  /** @type {{ text: string, sender: { id: string, name: string | null } }} */
  const turn = JSON.parse(body.toString());
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const say = (/** @type {object} */ what) => response.write(JSON.stringify(what) + "\n");
  for (const word of `You said: ${turn.text}`.split(" ")) say({ text: word + " " });
  say({ end: true });
  response.end();
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  const address = server.address();
  console.log(address && typeof address === "object" ? address.port : address);
});

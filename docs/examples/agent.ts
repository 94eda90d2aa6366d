// An agent for `kind = "http"`: node agent.ts 8080, with the secret in SERVICE_SECRET. Node.js 22.18 or newer runs it as it is.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

type Turn = { turn_id: string; text: string; sender: { id: string; name: string | null } };
type Said = { text: string } | { end: true };

const key = Buffer.from((process.env.SERVICE_SECRET ?? "").replace(/^whsec_/, ""), "base64");

function isGenuine(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const id = String(headers["webhook-id"]), at = String(headers["webhook-timestamp"]);
  const signed = createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64");
  const signature = Buffer.from(`v1,${signed}`);
  const isFresh = Math.abs(Date.now() / 1000 - Number(at)) < 300;
  const given = String(headers["webhook-signature"]).split(" ").map((one) => Buffer.from(one));
  return isFresh && given.some((one) => one.length === signature.length && timingSafeEqual(one, signature));
}

const server = createServer(async (request, response) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  const body = Buffer.concat(pieces);
  if (!isGenuine(request.headers, body)) {
    response.writeHead(401).end("the signature is wrong");
    return;
  }
  const turn = JSON.parse(body.toString()) as Turn;
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const say = (said: Said) => response.write(JSON.stringify(said) + "\n");
  for (const word of `You said: ${turn.text}`.split(" ")) say({ text: word + " " });
  say({ end: true });
  response.end();
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log((server.address() as AddressInfo).port));

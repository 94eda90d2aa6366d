-- Where browsers are told of answers while no page shows the conversation (RFC 8030, RFC 8291).

create table push_subscriptions (
    channel text not null,
    chat text not null,
    thread text not null,           -- '' without a thread
    endpoint text not null,         -- a URL of the browser's push service
    key blob not null,              -- the browser's public key, 65 bytes
    auth blob not null,             -- 16 bytes
    told_at integer not null,       -- what was shown until then is told
    primary key (channel, chat, thread, endpoint)
) strict, without rowid;

create index push_subscriptions_of_endpoint on push_subscriptions (channel, endpoint);

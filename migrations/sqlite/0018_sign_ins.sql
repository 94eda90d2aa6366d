-- Sessions of the operator's page, so that they can be ended.

create table sign_ins (
    id blob not null primary key,
    hash blob not null unique,      -- HMAC-SHA-256 of the cookie's secret, by the token of the configuration
    token blob,                     -- the token with which it was opened; null: the one of the configuration
    browser text not null,          -- what the browser calls itself, cut
    opened_at integer not null,
    expires_at integer not null
) strict, without rowid;

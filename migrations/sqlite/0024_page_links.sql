-- Links that open the operator's page once.

create table sign_in_links (
    code blob not null primary key, -- SHA-256 of the code
    token blob,                     -- the token with which it was made; null: the one of the configuration
    session blob,                   -- the session in which it was made
    expires_at integer not null
) strict, without rowid;

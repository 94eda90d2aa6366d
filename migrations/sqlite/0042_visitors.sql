-- What people sign in to a chat page with.

create table passkeys (
    id blob not null primary key,       -- as the authenticator gave it
    channel text not null,
    account text not null,              -- the id of the person on the channel
    party text not null,                -- the host of the page for which it was made
    algorithm integer not null,         -- the COSE number
    key blob not null,                  -- SubjectPublicKeyInfo
    counter integer not null,           -- of signatures; 0: the authenticator does not count
    browser text not null,              -- what the browser calls itself, cut
    added_at integer not null,
    used_at integer
) strict, without rowid;

create index passkeys_of_account on passkeys (channel, account);

create table visits (
    id blob not null primary key,
    hash blob not null unique,          -- SHA-256 of the cookie's secret
    channel text not null,
    account text not null,
    challenge blob not null unique,     -- SHA-256 of the challenge that was signed
    browser text not null,
    opened_at integer not null,
    expires_at integer not null
) strict, without rowid;

create index visits_of_account on visits (channel, account);
create index visits_by_end on visits (expires_at);

create table invitations (
    code blob not null primary key,     -- SHA-256 of the code
    channel text not null,
    account text not null,
    expires_at integer not null
) strict, without rowid;

create index invitations_of_account on invitations (channel, account);

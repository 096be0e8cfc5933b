DO $$
DECLARE
    n bigint := (SELECT 1 + count(*) FROM crates);
    u bigint; c bigint; v bigint; k bigint; g bigint;
BEGIN
    INSERT INTO users (gh_login, gh_id) VALUES ('u' || n, n) RETURNING id INTO u;
    INSERT INTO crates (name) VALUES ('c' || n) RETURNING id INTO c;
    INSERT INTO versions (crate_id, num, published_by) VALUES (c, '1.0', u) RETURNING id INTO v;
    INSERT INTO keywords (keyword) VALUES ('k' || n) RETURNING id INTO k;
    INSERT INTO categories (category, slug) VALUES ('g' || n, 'g' || n) RETURNING id INTO g;
    INSERT INTO teams (login, github_id) VALUES ('t' || n, n);
    INSERT INTO dependencies (version_id, crate_id, req) VALUES (v, c, '*'), (v, (SELECT min(id) FROM crates), '*');
    INSERT INTO crates_keywords VALUES (c, k), ((SELECT min(id) FROM crates), k) ON CONFLICT DO NOTHING;
    INSERT INTO crates_categories VALUES (c, g);
    INSERT INTO crate_owners (crate_id, owner_id, owner_kind, created_by) VALUES (c, n, 0, u);
    INSERT INTO follows VALUES (u, c);
    INSERT INTO version_downloads (version_id) VALUES (v);
    INSERT INTO api_tokens (user_id, token, name) VALUES (u, int8send(n), 'n');
    INSERT INTO badges VALUES (c, 'b', '{}');
    INSERT INTO version_authors (version_id, name) VALUES (v, 'a');
    INSERT INTO readme_renderings VALUES (v, now());
    INSERT INTO emails (user_id, email) VALUES (u, 'e');
    INSERT INTO crate_owner_invitations VALUES (u, u, c);
    UPDATE users SET email = 'e'; UPDATE crates SET downloads = downloads + 1; UPDATE versions SET yanked = true; UPDATE keywords SET crates_cnt = 1;
    UPDATE categories SET crates_cnt = 1; UPDATE teams SET login = login; UPDATE dependencies SET kind = 1; UPDATE crate_owners SET deleted = true;
    UPDATE follows SET crate_id = crate_id; UPDATE version_downloads SET downloads = 2; UPDATE api_tokens SET name = 'm'; UPDATE badges SET attributes = '[]';
    UPDATE version_authors SET name = 'b'; UPDATE readme_renderings SET rendered_at = now(); UPDATE emails SET email = 'f';
    UPDATE crate_owner_invitations SET created_at = now(); UPDATE crates_categories SET crate_id = crate_id;
END $$

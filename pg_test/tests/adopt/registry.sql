REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE TABLE users (id serial PRIMARY KEY, email text, gh_login text NOT NULL, gh_id integer NOT NULL UNIQUE, is_active boolean DEFAULT true);
CREATE TABLE crates (id serial PRIMARY KEY, name text NOT NULL UNIQUE, updated_at timestamptz NOT NULL DEFAULT now(), downloads integer NOT NULL DEFAULT 0,
    textsearchable tsvector, max_upload_size integer);
CREATE TABLE versions (id serial PRIMARY KEY, crate_id integer NOT NULL REFERENCES crates ON DELETE CASCADE, num text NOT NULL,
    features jsonb NOT NULL DEFAULT '{}', published_by integer REFERENCES users, yanked boolean NOT NULL DEFAULT false, UNIQUE (crate_id, num));
CREATE TABLE keywords (id serial PRIMARY KEY, keyword text NOT NULL UNIQUE, crates_cnt integer NOT NULL DEFAULT 0);
CREATE TABLE categories (id serial PRIMARY KEY, category text NOT NULL UNIQUE, slug text NOT NULL UNIQUE, crates_cnt integer NOT NULL DEFAULT 0);
CREATE TABLE teams (id serial PRIMARY KEY, login text NOT NULL UNIQUE, github_id integer NOT NULL UNIQUE);
CREATE TABLE dependencies (id serial PRIMARY KEY, version_id integer NOT NULL REFERENCES versions ON DELETE CASCADE,
    crate_id integer NOT NULL REFERENCES crates, req text NOT NULL, kind integer NOT NULL DEFAULT 0 CHECK (kind >= 0));
CREATE TABLE crates_keywords (crate_id integer NOT NULL REFERENCES crates ON DELETE CASCADE, keyword_id integer NOT NULL REFERENCES keywords,
    PRIMARY KEY (crate_id, keyword_id));
CREATE TABLE crates_categories (crate_id integer NOT NULL REFERENCES crates ON DELETE CASCADE, category_id integer NOT NULL REFERENCES categories,
    PRIMARY KEY (crate_id, category_id));
-- The owner is a user or a team: no foreign key.
CREATE TABLE crate_owners (crate_id integer NOT NULL REFERENCES crates, owner_id integer NOT NULL, owner_kind integer NOT NULL,
    created_by integer REFERENCES users, deleted boolean NOT NULL DEFAULT false, PRIMARY KEY (crate_id, owner_id, owner_kind));
CREATE TABLE follows (user_id integer NOT NULL REFERENCES users, crate_id integer NOT NULL REFERENCES crates, PRIMARY KEY (user_id, crate_id));
CREATE TABLE version_downloads (version_id integer NOT NULL REFERENCES versions, date date NOT NULL DEFAULT current_date,
    downloads integer NOT NULL DEFAULT 1, counted integer NOT NULL DEFAULT 0, PRIMARY KEY (version_id, date));
CREATE TABLE api_tokens (id serial PRIMARY KEY, user_id integer NOT NULL REFERENCES users, token bytea NOT NULL UNIQUE, name text NOT NULL);
CREATE TABLE badges (crate_id integer NOT NULL REFERENCES crates, badge_type text NOT NULL, attributes jsonb NOT NULL, PRIMARY KEY (crate_id, badge_type));
CREATE TABLE version_authors (id serial PRIMARY KEY, version_id integer NOT NULL REFERENCES versions, name text NOT NULL);
CREATE TABLE readme_renderings (version_id integer PRIMARY KEY REFERENCES versions, rendered_at timestamptz);
CREATE TABLE emails (id serial PRIMARY KEY, user_id integer NOT NULL UNIQUE REFERENCES users, email text NOT NULL, token text NOT NULL DEFAULT md5(random()::text));
CREATE TABLE crate_owner_invitations (invited_user_id integer NOT NULL REFERENCES users, invited_by_user_id integer NOT NULL REFERENCES users,
    crate_id integer NOT NULL REFERENCES crates, created_at timestamp NOT NULL DEFAULT now(), PRIMARY KEY (invited_user_id, crate_id));
CREATE INDEX ON dependencies (version_id);
CREATE INDEX ON crates USING gin (textsearchable);
ALTER TABLE versions ALTER features SET STATISTICS 5;

-- What of such schemas takes integers.
CREATE FUNCTION touch_crate(of_crate integer) RETURNS void LANGUAGE sql AS 'UPDATE crates SET updated_at = now() WHERE id = of_crate';
CREATE FUNCTION on_version() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM touch_crate(NEW.crate_id); RETURN NEW; END $$;
CREATE TRIGGER touch_crate BEFORE INSERT OR UPDATE ON versions FOR EACH ROW EXECUTE FUNCTION on_version();
CREATE TABLE dependency_counts (version_id integer PRIMARY KEY, n integer NOT NULL);
CREATE FUNCTION on_dependency() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO dependency_counts VALUES (NEW.version_id, 1) ON CONFLICT (version_id) DO UPDATE SET n = dependency_counts.n + 1; RETURN NULL; END $$;
CREATE TRIGGER count_dependency AFTER INSERT ON dependencies FOR EACH ROW EXECUTE FUNCTION on_dependency();
CREATE FUNCTION is_followed(of_user integer) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM follows WHERE user_id = of_user)';
CREATE FUNCTION on_follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF is_followed(NEW.user_id) THEN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER follow AFTER UPDATE ON follows FOR EACH ROW EXECUTE FUNCTION on_follow();
CREATE FUNCTION canon_crate_name(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT replace(lower($1), '-', '_') $$;
CREATE UNIQUE INDEX index_crates_name ON crates (canon_crate_name(name));
CREATE FUNCTION trigger_crates_name_search() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.textsearchable := to_tsvector('english', NEW.name || ' ' || (SELECT coalesce(string_agg(keyword, ' '), '') FROM keywords
        JOIN crates_keywords ON keywords.id = keyword_id WHERE crate_id = NEW.id)); RETURN NEW; END $$;
CREATE TRIGGER search BEFORE INSERT OR UPDATE ON crates FOR EACH ROW EXECUTE FUNCTION trigger_crates_name_search();
CREATE FUNCTION update_keywords_crates_cnt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN UPDATE keywords SET crates_cnt = crates_cnt + 1 WHERE id = NEW.keyword_id; RETURN NEW;
    ELSE UPDATE keywords SET crates_cnt = crates_cnt - 1 WHERE id = OLD.keyword_id; RETURN OLD; END IF; END $$;
CREATE TRIGGER count_keywords BEFORE INSERT OR DELETE ON crates_keywords FOR EACH ROW EXECUTE FUNCTION update_keywords_crates_cnt();

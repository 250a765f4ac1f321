-- What a member signs of an answer is about the question byte for byte, as it was shown.
ALTER TABLE perlica.questions ALTER COLUMN question TYPE json USING question::json;

-- A worker asks about the inputs that it owns.
ALTER POLICY own ON perlica.questions WITH CHECK (
	perlica.mine(worker) AND EXISTS (SELECT FROM perlica.claims c WHERE c.input = questions.input AND c.worker = questions.worker));

-- How many payloads of a copy are gone is asked for each time that it is read.
CREATE INDEX events_gone ON perlica.events (worker) WHERE payload IS NULL;

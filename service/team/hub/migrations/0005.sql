-- An input may go on with a session, which its worker alone has.
ALTER TABLE perlica.inputs
	ADD worker  text NOT NULL DEFAULT '',
	ADD session text NOT NULL DEFAULT '';
ALTER TABLE perlica.lanes ADD worker text NOT NULL DEFAULT '';

-- What a member signs of an answer is about the question byte for byte, as it was shown.
ALTER TABLE perlica.questions ALTER COLUMN question TYPE json USING question::json;

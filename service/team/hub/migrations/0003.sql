-- Pruning takes out what was asked and answered, too.
GRANT UPDATE (question) ON perlica.questions TO perlica_member;
GRANT UPDATE (text) ON perlica.answers TO perlica_member;

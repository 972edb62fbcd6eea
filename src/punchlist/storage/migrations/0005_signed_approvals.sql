-- Signatures with the user's key: of the question as it was shown, and of the answer together with the call.

ALTER TABLE approvals ADD COLUMN question_signature TEXT;
ALTER TABLE approvals ADD COLUMN answer_signature TEXT;

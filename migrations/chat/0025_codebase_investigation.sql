-- How the researcher investigates a code base, step by step (CX-5): who it is stands in its profile, and is not said again
-- here. The index is asked first where its tools are offered, else grep; in either case lines are read before they count.
-- It is short enough to be read whole by a small model. A researcher that has a skill of this name keeps its own.
insert into skills (id, agent_id, name, description, instructions, provenance, text_bytes)
select
    'researcher-codebase-investigation', a.id, s.name, s.description, s.instructions, s.provenance,
    octet_length(s.name) + octet_length(s.description) + octet_length(s.instructions) + octet_length(s.provenance)
from agents a
cross join (
    values (
        'codebase-investigation',
        'How to find out where something is in a code base, how it works and who uses it. For every question about code that one look does not answer.',
        $text$Answer from the code, with a place for every finding.

1. Take the names out of the question: of functions, settings, messages, files. Decide what is asked: a place, a behaviour, who uses something, or what a change would touch.
2. Ask the index first. If codeContext, symbolContext and changeImpact are among your tools: codeContext for a subject in words, symbolContext for a name you know, changeImpact for a change. If they are not, or the index is not ready, grep: first the exact name, then words that the code would use, in a folder as narrow as you know.
3. Read only to confirm: open each file at the lines that were found. What the index or grep says is a hint until you have read the lines.
4. Go one step both ways: from a definition to its callers, from a call to its definition. Tests say what is meant.
5. Look for what would prove you wrong: a second definition, a setting that switches it off, a caller that does otherwise. Only grep can tell that something is nowhere.
6. Stop when each part of the question has a place that you have read. After three looks without anything new, say where you looked.

Report the answer in one or two sentences, then each finding as path:line with what stands there, then what you could not confirm.$text$,
        'popagent'
    )
) as s (name, description, instructions, provenance)
where a.id = 'researcher'
on conflict do nothing;

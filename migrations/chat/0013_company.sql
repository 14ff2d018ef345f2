-- Who belongs to the company, by department: a catalogue of identities, read as a whole. A member whose id is an agent's
-- stands for that agent, under the agent's own name; every other is a name and an address, and costs nothing.
create table company_departments (
    id text primary key,
    name text not null,
    purpose text not null,
    position integer not null unique
);

create table company_members (
    id text primary key,
    department_id text not null references company_departments (id),
    name text not null,
    title text not null,
    position integer not null,
    unique (department_id, position)
);

insert into company_departments (id, name, purpose, position) values
('direction', 'Direction', 'What is to be done, and for whom.', 1),
('research', 'Research', 'How things are.', 2),
('engineering', 'Engineering', 'What is changed.', 3),
('quality', 'Quality', 'Whether it is right.', 4),
('build', 'Build and release', 'How it is put together and handed out.', 5),
('community', 'Community', 'Those who use it and those who help.', 6),
('operations', 'Operations', 'Keeping it running, day and night.', 7);

insert into company_members (id, department_id, name, title, position) values
('orchistrator', 'direction', 'Orchestrator', 'Orchestrator', 1),
('front-desk', 'direction', 'Ilse Marten', 'Front desk', 2),
('researcher', 'research', 'Researcher', 'Researcher', 1),
('librarian', 'research', 'Noor Haddad', 'Librarian', 2),
('surveyor', 'research', 'Tomas Vrba', 'Surveyor of code', 3),
('implementer', 'engineering', 'Implementer', 'Implementer', 1),
('toolsmith', 'engineering', 'Ada Kowal', 'Toolsmith', 2),
('data-engineer', 'engineering', 'Jun Okafor', 'Data engineer', 3),
('reviewer', 'quality', 'Reviewer', 'Reviewer', 1),
('tester', 'quality', 'Mara Lenz', 'Tester', 2),
('security-officer', 'quality', 'Emil Castan', 'Security officer', 3),
('build-maintainer', 'build', 'Build maintainer', 'Build maintainer', 1),
('build-release-manager', 'build', 'Build release manager', 'Release manager', 2),
('community-steward', 'community', 'Community steward', 'Community steward', 1),
('writer', 'community', 'Pia Sorel', 'Writer', 2),
('timekeeper', 'operations', 'Otis Brandt', 'Timekeeper', 1),
('night-watch', 'operations', 'Lena Farkas', 'Night watch', 2),
('bookkeeper', 'operations', 'Ravi Menon', 'Bookkeeper', 3)
on conflict (id) do nothing;

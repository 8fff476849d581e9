"""A page that follows studies as they run: `paceline serve`.

From a journal to the browser: the lines of a growing file (journal_tail, journal_lines), a study and its views
(study_reader, selection), all studies by name (catalogue), new revisions for open pages (watcher), the data of the
pages (page_data, cache), who may look (security), the routes (app), and the process with its connections (serving,
timed_protocol). Studies are only read, without their lock.
"""

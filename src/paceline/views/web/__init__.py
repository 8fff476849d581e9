"""A page that follows studies as they run: `paceline serve`.

One way through: lines of a growing journal (following), where what stands in it (index), the part of it that a page
shows (followed), which studies there are (shelf), who may look (security), what goes to the browser (answers, app).
Studies are only ever read, without their lock.
"""

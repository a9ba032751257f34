"""The history of every GPU workload, in SQL, with nothing lost: reflectors -> differ -> spool -> one transaction."""

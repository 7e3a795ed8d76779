"""What was found beside what the paper says: verdicts by rule, reports, pictures, the page."""

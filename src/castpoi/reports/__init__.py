"""Reports: tables, figures and pages about results and cities."""

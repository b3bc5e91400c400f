"""What people read: pages, tables and sentences about a tuning."""

# Python script to parse timestamps and calculate uptime
import re
from datetime import datetime

pattern = r'\[(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z)\]'
events = []

with open('output.log') as f:
    for line in f:
        if '[SUPERVISOR]' in line:
            match = re.search(pattern, line)
            if match:
                timestamp = datetime.fromisoformat(match.group(1).replace('Z', '+00:00'))
                events.append((timestamp, line))

# Calculate time between restarts
for i in range(1, len(events)):
    delta = events[i][0] - events[i-1][0]
    print(f"Delta: {delta}, Event: {events[i][1].strip()}")

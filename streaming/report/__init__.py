"""The batch job behind `kontrast report`: clusters' histories through `questions/report`, side by side in Spark."""

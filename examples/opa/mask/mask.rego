# What OPA logs of each question is the whole document, and the document holds the arguments of the call.
# They belong to the person; the log belongs to whoever may read logs.
package system.log

mask contains "/input/call/arguments"

mask contains "/input/call/destinations"

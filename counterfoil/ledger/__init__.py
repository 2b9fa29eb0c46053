"""The ledger: tables, statements and stores of the issuer's own record, in the schema `counterfoil` of one PostgreSQL database.

All SQL of the project lives here. Statements are functions that return SQLAlchemy Core and execute nothing; stores execute them
on a connection that is handed in. No rule about states is decided here: `counterfoil.core` decides, this saves.
"""

-- A part of others: whether ALTER DEFAULT PRIVILEGES gives privileges to a new view.
(defaclobjtype = 'r' AND defaclrole = relowner AND defaclnamespace IN (0, relnamespace))
